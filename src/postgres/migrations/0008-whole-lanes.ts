/** A discard or resolve can end whole lanes: `until` is the last position of the letters in a lane when the act was recorded. */
export const wholeLanes = (schema: string) => `
ALTER TABLE ${schema}.holdfast_redrives ADD COLUMN whole boolean NOT NULL DEFAULT false;
ALTER TABLE ${schema}.holdfast_redrive_lanes ADD COLUMN until bigint;
`
