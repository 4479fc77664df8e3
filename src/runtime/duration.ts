import { HoldfastError } from '../errors.ts'

interface Forms {
  readonly duration: number | `${number}ms` | `${number}s` | `${number}m` | `${number}h` | `${number}d`
}

/**
 * `'250ms'`, `'15s'`, `'5m'`, `'24h'`, `'7d'`, or plain milliseconds.
 *
 * Defined with an indexed access, because TypeScript prints a named union by its name: an error would show "not assignable to type
 * 'Duration'" instead of the forms.
 */
export type Duration = Forms['duration']

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const pattern = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/

export function toMs(duration: Duration, what: string): number {
  const match = typeof duration === 'string' ? pattern.exec(duration) : null
  const ms = match ? Number(match[1]) * unitMs[match[2] as keyof typeof unitMs] : duration
  if (typeof ms !== 'number' || !Number.isFinite(ms) || ms < 0) {
    const given = typeof duration === 'string' ? JSON.stringify(duration) : String(duration)
    throw new HoldfastError('OPTION_INVALID', `${what} is ${given}, which is not a duration.`, {
      hint: "Give a number with a unit (ms, s, m, h or d) and no space, such as '250ms', '1.5s', '5m', '24h' or '7d'; or a number of milliseconds, such as 1500.",
    })
  }
  return ms
}

/** In readable form: `1500` is `1.5s`, `120000` is `2m`. */
export function fromMs(ms: number): string {
  if (ms === 0) return '0s'
  const units = Object.entries(unitMs).toReversed()
  const [unit, one] = units.find(([, size]) => ms >= size && Number.isInteger((ms * 10) / size)) ?? ['ms', 1]
  return `${ms / one}${unit}`
}
