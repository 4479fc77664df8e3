// Who tests the tests, the other way round: changes the code of a folder in every small way that there is, one at a time, and counts
// what no test notices.
//   npm run -s mutants -- --folder failure --json
//   npm run -s mutants -- --folder engine --files src/engine/projection/page.ts,src/engine/projection/held-lanes.ts
//   npm run -s mutants -- --folder engine --tests 'src/engine/handling/*.test.ts'
// With --tests only these have a say: a first look with some quick ones. Who survives that is tried again by the next run with more.
// docs/mutants.md has the figures, and says why those live that do.
import { parseArgs } from 'node:util'
import { folders, type FolderName } from './folders.ts'
import { mutate } from './mutate.ts'

const { values } = parseArgs({
  options: {
    folder: { type: 'string' },
    files: { type: 'string' },
    tests: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})
const names = Object.keys(folders) as FolderName[]
const chosen = names.filter((name) => values.folder === undefined || values.folder === name)
const files = values.files?.split(',')
const tests = values.tests?.split(',')
if (chosen.length === 0 || ((files ?? tests) && chosen.length > 1)) {
  console.error(
    `Give --folder ${names.join(', ')} or none for all of them; --files and --tests only together with --folder.`,
  )
  process.exit(2)
}

/** Fewer than these of a hundred, and the tests are not worth much. */
const leastScore = 85

const results = []
for (const folder of chosen) {
  const { alive, ...figures } = await mutate(folder, files, tests)
  for (const { file, line, column, mutator, code } of alive)
    console.error(`${file}:${line}:${column} ${mutator}: ${code.replaceAll(/\s+/g, ' ').slice(0, 120)}`)
  results.push(figures)
}
console.log(JSON.stringify(results.length === 1 ? results[0] : { folders: results }, null, values.json ? undefined : 2))
process.exitCode = results.every(({ score }) => score >= leastScore) ? 0 : 1
