/** Lanes of a redrive that wait for an open breaker are counted like those that failed. */
export const deferred = `
CREATE INDEX holdfast_redrive_lanes_deferred ON holdfast_redrive_lanes (redrive) WHERE state = 'deferred';
`
