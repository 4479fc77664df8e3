/** Formats a number with thousands separators: `12,345`. */
export function count(value: number): string {
  return value.toLocaleString('en')
}

/** `1 lane`, `2 lanes`. */
export function many(value: number, one: string, several = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : several}`
}
