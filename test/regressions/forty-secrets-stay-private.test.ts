import { describe, expect, it } from 'vitest'
import { redactFailure } from '../../src/dead-letter/redact.ts'
import { keyShape } from '../../src/dead-letter/shape.ts'
import { describeFailure } from '../../src/failure/failure.ts'
import { canaries, diagnosis, leaksOf, messageWith } from '../canaries.ts'

// P12: no value of a payload is in what is shown of a failure, wherever it was put and however it was written; and what is wrong can be read
// all the same.

const named = (name: string) => ({ [name]: () => new Error(messageWith('it')) })[name] as () => Error

const forms: Readonly<Record<string, (secret: string) => unknown>> = {
  'as it is': (secret) => new Error(messageWith(secret)),
  'in quotes': (secret) => new Error(messageWith(`"${secret}" or '${secret}'`)),
  'in capitals': (secret) => new Error(messageWith(secret.toUpperCase())),
  'in small letters': (secret) => new Error(messageWith(secret.toLowerCase())),
  'in JSON': (secret) => new Error(messageWith(JSON.stringify({ value: [secret] }))),
  'in JSON in JSON': (secret) => new Error(messageWith(JSON.stringify(JSON.stringify({ value: secret })))),
  'in a URL': (secret) => new Error(messageWith(`https://carrier.example/?q=${encodeURIComponent(secret)}&n=1`)),
  'in a form': (secret) => new Error(messageWith(new URLSearchParams({ q: secret }).toString())),
  'in base64': (secret) => new Error(messageWith(Buffer.from(`user:${secret}`).toString('base64'))),
  'in base64 for URLs': (secret) => new Error(messageWith(Buffer.from(`{"v":"${secret}"}`).toString('base64url'))),
  'in hexadecimal digits': (secret) => new Error(messageWith(`\\x${Buffer.from(secret).toString('hex')}`)),
  'cut off': (secret) => new Error(messageWith(`${secret.slice(0, Math.max(4, secret.length - 3))}…`)),
  'without its beginning': (secret) => new Error(messageWith(`...${secret.slice(Math.min(3, secret.length - 4))}`)),
  'in a cause': (secret) => new Error(messageWith('it'), { cause: new Error(`no ${secret}`) }),
  'in the name of an error': (secret) => Object.assign(new Error(messageWith('it')), { name: `${secret}Error` }),
  'in the name of a cause': (secret) =>
    new Error(messageWith('it'), { cause: Object.assign(new Error('no'), { name: secret }) }),
  'in a code': (secret) => Object.assign(new Error(messageWith('it')), { code: `E_${secret}` }),
  'in the name of a function': (secret) => named(secret)(),
  'in the head of a stack': (secret) =>
    Object.assign(new Error(messageWith('it')), { stack: `Error: ${secret}\n    at ${secret} (${secret}:1:1)` }),
  'in a message of several lines': (secret) => new Error(`${messageWith('it')}\n    at ${secret} (/srv/x.ts:1:1)\nend`),
  'in a detail of a database': (secret) =>
    Object.assign(new Error(messageWith('it')), { detail: `Key (v)=(${secret}) already exists.`, where: secret }),
  'as a text that was thrown': (secret) => messageWith(secret),
  'as an object that was thrown': (secret) => ({ message: messageWith(secret), secret }),
  'at the end of a message that is too long': (secret) =>
    new Error(`${messageWith('it').padEnd(4_089)} ${secret} and more`),
}

describe('a failure as it is shown', () => {
  it('is tried with forty secrets', () => {
    expect(new Set(canaries).size).toBe(40)
    for (const secret of canaries) expect(leaksOf(secret, messageWith('it'))).toEqual([])
  })

  it.for(Object.keys(forms))('has none of them %s, and can be read', (form) => {
    const leaks: unknown[] = []
    for (const secret of canaries) {
      const thrown = forms[form]?.(String(secret))
      const failure = describeFailure(thrown, 'permanent', 'rule', 'HTTP 503')
      const payloads: object[] = [{ deep: [{ value: secret }] }, [{}, { userId: secret }]]
      // A key that is a word is one of the schema.
      if (keyShape(String(secret)) !== String(secret)) payloads.push({ [secret]: 1 })
      for (const payload of payloads) {
        const shown = redactFailure(failure, payload)
        const text = [
          shown.message,
          shown.errorType,
          shown.code,
          shown.evidence,
          shown.stack,
          ...shown.causes.flatMap((c) => [c.errorType, c.message]),
        ].join('\n')
        const found = leaksOf(secret, text)
        const unreadable = diagnosis.filter((part) => !shown.message.includes(part))
        if (found.length + unreadable.length > 0) leaks.push({ secret, payload, found, unreadable, text })
      }
    }
    expect(leaks).toEqual([])
  })
})
