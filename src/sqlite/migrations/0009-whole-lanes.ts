/** A discard or resolve can end whole lanes: `until` is the last position of the letters in a lane when the act was recorded. */
export const wholeLanes = `
ALTER TABLE holdfast_redrives ADD COLUMN whole INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_redrive_lanes ADD COLUMN until INTEGER;
`
