import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { offences, readByUsers, root } from '../../scripts/words.mjs'

describe('what users read', () => {
  it('has none of the words that our English avoids: node scripts/words.mjs lists them with what to write instead', () => {
    const files = readByUsers()
    expect(files.length).toBeGreaterThan(300)
    expect(files).toEqual(expect.arrayContaining(['README.md', 'src/cli/main.ts', 'src/index.ts']))
    const found = files.flatMap((file) =>
      offences(readFileSync(join(root, file), 'utf8')).map(({ line, found: words }) => `${file}:${line}: ${words}`),
    )
    expect(found).toEqual([])
  })

  it.for([
    'The lane is mended.',
    'An operator lets the lane go.',
    'Whoever owns it.',
    "It is nobody's.",
    '10s unless you say otherwise',
    'the others go on',
    'It is told when it ends.',
    'seen to elsewhere',
    'The body is no JSON.',
    'What stands behind it waits.',
    'A person decides.',
  ])('is searched for: %s', (sentence) => {
    expect(offences(sentence)).toHaveLength(1)
  })

  it.for(['It is no longer held.', 'recommended', 'a personal key', 'The lanes go on.', 'says where'])(
    'may say: %s',
    (sentence) => {
      expect(offences(sentence)).toEqual([])
    },
  )
})
