export const warmUpEvents = 20
/** Between two events, so that each finds an idle machine. */
export const pauseMs = { least: 5, most: 30 }
