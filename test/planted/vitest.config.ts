import project from '../../vitest.config.ts'

// As always, but for the servers: to start them for each of many short runs would take most of the time.
export default { ...project, test: { ...project.test, globalSetup: ['test/planted/servers.ts'] } }
