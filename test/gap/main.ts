import { parseArgs } from 'node:util'
import { startServer } from '../postgres/server.ts'
import { runGap } from './run.ts'

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    appends: { type: 'string', default: '200000' },
    rounds: { type: 'string', default: '9' },
    version: { type: 'string', default: 'newest' },
  },
})

const leastRatio = 0.95
const version = values.version === 'oldest' ? 'oldest' : 'newest'
await using server = await startServer({ version })
const result = await runGap({
  url: await server.createDatabase('gap'),
  otherUrl: await server.createDatabase('other'),
  appends: Number(values.appends),
  rounds: Number(values.rounds),
})
const { skipped, inverted, twice, gapsSeen, naiveReaderSkipped, ratioToNaive } = result
const complaints = [
  skipped > 0 && `${skipped} events were skipped`,
  inverted > 0 && `${inverted} events came out of order`,
  twice > 0 && `${twice} events came twice`,
  gapsSeen === 0 && 'no gap was seen, so nothing was proved',
  naiveReaderSkipped === 0 && 'the naive reader skipped nothing, so nothing was proved',
  ratioToNaive < leastRatio && `appends run at ${ratioToNaive} of the naive ones`,
].filter((complaint) => complaint !== false)

console.log(JSON.stringify({ postgres: server.version, ...result }, null, values.json ? undefined : 2))
for (const complaint of complaints) console.error(`Failed: ${complaint}.`)
if (complaints.length > 0) process.exitCode = 1
