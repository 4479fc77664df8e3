import { createPostgresStore } from 'holdfast/postgres'
import { describe } from 'vitest'
import { createPlace, type Place, type RunOptions } from '../cli/place.ts'
import { describeNewest } from '../postgres/databases.ts'
import { useSchemas } from '../postgres/schemas.ts'

/** `store` is what `--store` takes. */
export type StoredPlace = Place & { readonly store: string }

export const why = ['--reason', 'a test']

/** The same tests of the command line on SQLite and PostgreSQL, each in a folder and an empty store of its own. */
export function describeCli(
  promise: string,
  tests: (open: (files?: Record<string, string>) => StoredPlace) => void,
): void {
  describe(`SQLite: ${promise}`, () => {
    tests((files) => {
      const place = createPlace(files)
      return { ...place, store: place.file }
    })
  })
  describeNewest(promise, (server) => {
    const schemas = useSchemas(server)
    tests((files) => {
      const schema = schemas.newSchema()
      const place = createPlace(files)
      const within = (options: RunOptions = {}): RunOptions => ({
        ...options,
        env: { HOLDFAST_STORE: schemas.url, HOLDFAST_SCHEMA: schema, ...options.env },
      })
      return {
        ...place,
        store: schemas.url,
        run: (args, options) => place.run(args, within(options)),
        call: (args, options) => place.call(args, within(options)),
        json: (args, options) => place.json(args, within(options)),
        open: () => createPostgresStore({ connection: schemas.url, schema, connections: 4 }),
      }
    })
  })
}

/** One event, as a program appends it. */
export const append = (place: Place, key: string, type: string, data: object) =>
  place.json(['events', 'append', key, type, '--data', JSON.stringify(data), ...why])

/** Lane `a` is held at position 1 with one letter behind it, `b` at position 3; `c` flows. */
export async function holdSome(place: Place): Promise<void> {
  await place.json(['migrate'])
  await append(place, 'a', 'Debited', { amount: 5, note: 'geheim' })
  await append(place, 'a', 'Credited', { amount: 7 })
  await append(place, 'b', 'Debited', { amount: 6, note: 'geheim' })
  await append(place, 'c', 'Credited', { amount: 1 })
  const { code, stderr } = await place.call(['start', '--drain'])
  if (code !== 0) throw new Error(stderr)
}

/** The commands that a text tells the reader to run, one for each line that has one, split as a shell does. */
export function commandIn(text: string): readonly (readonly string[])[] {
  return text.split('\n').flatMap((line) => {
    const [, command] = /\bholdfast (.*)$/.exec(line) ?? []
    if (command === undefined) return []
    const words = command.match(/(?:"[^"]*"|'[^']*'|[^\s'"]+)+/g) ?? []
    return [words.map((word) => word.replaceAll(/["']/g, ''))]
  })
}
