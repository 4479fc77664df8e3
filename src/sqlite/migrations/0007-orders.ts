/** The order of a handler: which lanes its letters are in. */
export const orders = `
-- 'key', 'partition' or 'none', the same in all partitions of a handler. Empty where it was made before this, and for projections.
ALTER TABLE holdfast_partitions ADD COLUMN lane_order TEXT;
`
