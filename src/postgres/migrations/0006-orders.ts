/** The order of a handler: which lanes its letters are in. */
export const orders = (schema: string) => `
-- 'key', 'partition' or 'none', the same in all partitions of a handler. Empty where it was made before this, and for projections. It is with
-- the partitions because a claim locks one of them, and must see the order as it is then.
ALTER TABLE ${schema}.holdfast_partitions ADD COLUMN lane_order text;
`
