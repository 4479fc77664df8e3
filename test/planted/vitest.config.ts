import project, { testFiles } from '../../vitest.config.ts'

// As always, but for the servers: starting them for each of many short runs would take most of the time.
const { projects: _, ...settings } = project.test ?? {}
export default { ...project, test: { ...settings, include: testFiles, globalSetup: ['test/planted/servers.ts'] } }
