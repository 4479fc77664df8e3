/** Versions of projections: the live one, and those that are built or kept beside it. */
export const rebuild = (schema: string) => `
-- version: which the code must have that runs it. generation_of: the live one that it stands beside of. epochs: none of its generations
-- may begin below, so that a lease of one that was dropped means nothing to another of the same name.
ALTER TABLE ${schema}.holdfast_subscriptions
  ADD COLUMN version bigint NOT NULL DEFAULT 1,
  ADD COLUMN generation_of text COLLATE "C",
  ADD COLUMN epochs bigint NOT NULL DEFAULT 0,
  ADD COLUMN retired_at bigint;

CREATE INDEX holdfast_subscriptions_generations ON ${schema}.holdfast_subscriptions (generation_of)
  WHERE generation_of IS NOT NULL;

-- Who has another version than the live one has no share in the work.
ALTER TABLE ${schema}.holdfast_members ADD COLUMN version bigint NOT NULL DEFAULT 1;
`
