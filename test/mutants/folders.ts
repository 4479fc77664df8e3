/** What is mutated together, and the tests that are to notice. Only tests that are fast and stay in their process. */
export interface Folder {
  readonly mutate: readonly string[]
  readonly tests: readonly string[]
}

const all = (folder: string) => [`src/${folder}/**/*.ts`]
// Not the model: it is most of the time of all of them together.
const engine = ['src/engine/**/!(model).test.ts']

export const folders = {
  failure: { mutate: all('failure'), tests: ['src/failure/*.test.ts'] },
  'dead-letter': { mutate: all('dead-letter'), tests: ['src/dead-letter/*.test.ts'] },
  breaker: { mutate: all('breaker'), tests: ['src/breaker/*.test.ts'] },
  engine: { mutate: all('engine'), tests: engine },
} as const satisfies Record<string, Folder>

export type FolderName = keyof typeof folders
