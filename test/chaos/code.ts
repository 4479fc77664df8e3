/** The code of the deepest cause that has one: that of the database or of the network, under ours. */
export function codeOf(error: unknown): string {
  let code = ''
  for (let one = error; one instanceof Error; one = one.cause) {
    if ('code' in one && typeof one.code === 'string') code = one.code
  }
  return code || String(error)
}
