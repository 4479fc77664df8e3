import { childPath } from './diff.ts'

/**
 * The part of the Standard Schema interface (version 1) that we call. zod, valibot, arktype and others implement it, so a catalog
 * accepts their schemas without a dependency.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

export type InputOf<S> = S extends StandardSchema ? NonNullable<S['~standard']['types']>['input'] : never
export type OutputOf<S> = S extends StandardSchema ? NonNullable<S['~standard']['types']>['output'] : never

export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const standard = (value as Partial<StandardSchema>)['~standard']
  return typeof standard === 'object' && standard?.version === 1 && typeof standard.validate === 'function'
}

/** The path of the first issue, such as `data.lines[3].amount`. */
export function issuePath([first]: readonly SchemaIssue[], root: string): string {
  const parts = (first?.path ?? []).map((part) => (typeof part === 'object' ? part.key : part))
  return parts.reduce((path: string, part) => childPath(path, typeof part === 'symbol' ? String(part) : part), root)
}

export function describeIssues(issues: readonly SchemaIssue[]): string {
  const shown = issues.slice(0, 5).map((issue) => {
    const path = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
    return path ? `${path}: ${issue.message}` : issue.message
  })
  return shown.join('; ') + (issues.length > 5 ? ` (and ${issues.length - 5} more)` : '')
}
