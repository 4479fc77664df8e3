/** Lanes of a redrive that wait for an open breaker are counted like those that failed. */
export const deferred = (schema: string) => `
CREATE INDEX holdfast_redrive_lanes_deferred ON ${schema}.holdfast_redrive_lanes (redrive) WHERE state = 'deferred';
`
