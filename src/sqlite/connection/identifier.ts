import { HoldfastError } from '../../errors.ts'

const identifier = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/

/** Names come from checked definitions; they are checked again here to prevent SQL injection. */
export function quote(name: string): string {
  if (!identifier.test(name)) throw new HoldfastError('NAME_INVALID', `${JSON.stringify(name)} is not an identifier.`)
  return `"${name}"`
}
