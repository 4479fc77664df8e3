/** Versions of projections: the live one, and those that are built or kept beside it. */
export const rebuild = `
-- version: which the code must have that runs it. generation_of: the live one that it stands beside of. epochs: none of its generations
-- may begin below, so that a lease of one that was dropped means nothing to another of the same name.
ALTER TABLE holdfast_subscriptions ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE holdfast_subscriptions ADD COLUMN generation_of TEXT;
ALTER TABLE holdfast_subscriptions ADD COLUMN epochs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_subscriptions ADD COLUMN retired_at INTEGER;

CREATE INDEX holdfast_subscriptions_generations ON holdfast_subscriptions (generation_of) WHERE generation_of IS NOT NULL;

-- Who has another version than the live one has no share in the work.
ALTER TABLE holdfast_members ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
`
