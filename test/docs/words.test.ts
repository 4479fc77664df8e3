import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { offences, readByUsers, root, words } from '../../scripts/words.mjs'

describe('what users and contributors read', () => {
  it('has none of the words that our English avoids: node scripts/words.mjs lists them with what to write instead', () => {
    const files = readByUsers()
    expect(files.length).toBeGreaterThan(300)
    expect(files).toEqual(
      expect.arrayContaining([
        'README.md',
        'src/cli/main.ts',
        'src/index.ts',
        'bench/main.ts',
        'scripts/ready.mjs',
        'test/planted/README.md',
      ]),
    )
    const found = files.flatMap((file) =>
      offences(readFileSync(join(root, file), 'utf8')).map(({ line, found: text }) => `${file}:${line}: ${text}`),
    )
    expect(found).toEqual([])
  })

  // In the order of `words`: one or more sentences for each row.
  const avoided: readonly (readonly string[])[] = [
    ['The lane is mended.', 'Mend this first.'],
    ['An operator lets the lane go.', 'The old owner lets go of it.'],
    ['Whoever owns it.', "It is nobody's.", 'Somebody else has it.', 'one who is alone'],
    ['10s unless you say otherwise'],
    ['the others go on', 'It lets the others pass.'],
    ['It is told when it ends.', 'The engine is told about it.', 'The command says why.'],
    ['seen to elsewhere'],
    ['The body is no JSON.'],
    ['This brings it to an end.', 'All letters were gone through.'],
    ['What stands behind it waits.'],
    ['A person decides.', 'for people'],
    ['Show how it is called.'],
    ['There is not what the log makes of it.'],
  ]

  it('each row of the words is searched for', () => {
    expect(avoided).toHaveLength(words.length)
    for (const [i, sentences] of avoided.entries())
      for (const sentence of sentences)
        expect({ sentence, found: offences(sentence).map(({ instead }) => instead) }).toEqual({
          sentence,
          found: [words[i]?.[1]],
        })
  })

  it.for(['It is no longer held.', 'recommended', 'a personal key', 'The lanes go on.', 'says where'])(
    'may say: %s',
    (sentence) => {
      expect(offences(sentence)).toEqual([])
    },
  )
})
