import { HoldfastError } from '../../errors.ts'
import { cut, printed } from '../../failure/peek.ts'

// PostgreSQL cuts identifiers at 63 bytes, where two long names could become equal.
const identifier = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/
const schemaName = /^[a-z_][a-z0-9_]{0,47}$/

/** Names come from checked definitions; they are checked again here to prevent SQL injection. */
export function quote(name: string): string {
  if (!identifier.test(name)) throw new HoldfastError('NAME_INVALID', `${JSON.stringify(name)} is not an identifier.`)
  return `"${name}"`
}

export function checkSchema(name: unknown): string {
  if (typeof name === 'string' && schemaName.test(name) && !name.startsWith('pg_')) return name
  throw new HoldfastError('NAME_INVALID', `The schema ${JSON.stringify(cut(printed(name), 60))} is not a valid name.`, {
    hint: "Use up to 48 of: lower-case letters, digits and '_', not starting with a digit or with pg_.",
  })
}
