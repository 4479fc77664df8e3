import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { bounded, categorised, consistencyFirst, differentiated, type Policy, recovering } from '../../src/index.ts'
import { type Cause, causes } from './causes.ts'
import { observe, type Observed } from './observe.ts'

// HOLDFAST_WRITE_DOCS=1 writes the table into the page instead of comparing it.
const writes = process.env.HOLDFAST_WRITE_DOCS === '1'
const page = fileURLToPath(new URL('../../docs/reference/failures.md', import.meta.url))
const begin = '<!-- failures -->\n'

const presets: readonly Policy[] = [bounded(), consistencyFirst(), recovering(), differentiated(), categorised()]

function shownTime(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms / 10) * 10} ms`
  return `${Math.round(ms / 100) / 10} s`
}

function shownCell({ is }: Cause, { status, why, tries, tookMs, recorded }: Observed): string {
  const times = `${tries} times`
  switch (status) {
    case 'parked':
      if (is === 'deadly') return `parked after ${tries} deaths`
      return tries < 2 ? 'parked at once' : `parked after ${shownTime(tookMs)}, tried ${times}`
    case 'discarded':
      return 'discarded'
    case 'retrying':
      return `retrying: ${tries} attempts in 10 min`
    case 'waiting':
      return 'waiting, never tried'
    case 'blocked':
      return `blocked (${why}): ${tries} attempts in 10 min, ${recorded} counted`
  }
}

function shownFailure({ failure }: Observed): string {
  if (!failure) return '(none)'
  const evidence = failure.evidence ?? failure.code
  return [failure.class, `\`${failure.rule}\``, ...(evidence ? [evidence] : [])].join(', ')
}

const rows = new Map<Cause, readonly Observed[]>()

describe('what becomes of an event that fails', () => {
  it.for(causes)('$name', { timeout: 60_000 }, async (cause) => {
    const cells: Observed[] = []
    for (const preset of presets) cells.push(await observe(cause, preset))
    rows.set(cause, cells)
    for (const { status, why, goesOn, othersFlow, tries, recorded } of cells) {
      // Whatever is not for a person to decide goes on by itself when the cause is gone; and what is, doesn't.
      expect(goesOn).toBe(status !== 'parked')
      // Whoever goes another way does not wait, unless the policy says so, or fails as well.
      expect(othersFlow).toBe(why !== 'block' && why !== 'outage')
      // Every attempt is in the letter, but for probes; one that can't be read was never tried, and has its failure all the same.
      const counted = status === 'blocked' || cause.is === 'deadly' ? recorded : tries || Number(status === 'parked')
      expect(recorded).toBe(counted)
    }
    // What is recorded about the failure is the same, whatever the policy makes of it.
    expect(new Set(cells.map(shownFailure)).size).toBe(1)
  })

  it('is what the page says', async () => {
    expect(rows.size).toBe(causes.length)
    const head = ['what happens', 'recorded as', ...presets.map(({ name }) => `\`${name}\``)]
    const body = Array.from(rows, ([cause, cells]) => [
      cause.name,
      shownFailure(cells[0] as Observed),
      ...cells.map((cell) => shownCell(cause, cell)),
    ])
    const table = [head, head.map(() => '---'), ...body].map((cells) => `| ${cells.join(' | ')} |\n`).join('')
    const text = await readFile(page, 'utf8')
    const [before = '', rest = ''] = text.split(begin)
    const after = rest.slice(rest.indexOf('\n\n'))
    const wanted = `${before}${begin}${table.trimEnd()}${after}`
    if (writes) await writeFile(page, wanted)
    expect(await readFile(page, 'utf8')).toBe(wanted)
  })
})
