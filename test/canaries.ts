/** Forty values of the kinds that payloads have and that no log may have. No two have a word in common with each other, nor with what a message says around them. */
export const canaries: readonly (string | number)[] = [
  'Quillon Vantreaux',
  'Żółwińska',
  "Siobhán O'Reardon-Pyke",
  'zed',
  'Brzk',
  'quillon.v@mailbox.example',
  '+49 170 5551234',
  '(0351) 886-77-12',
  'DE02 1203 0000 0000 2020 51',
  '4929 1234 5678 9013',
  '378282246310005',
  'sk_live_Tz8Qw3LmXv0',
  'hunter2-Vq',
  'eyJhbGciOiJub25lIn0.eyJzdWIiOiI5OTEyIn0.x1',
  'c2b0a9d4-5f6e-4c3b-8a17-0f1e2d3c4b5a',
  'Bearer 9f8e7d6c5b4a',
  8_812_477,
  73_041.55,
  611,
  90_071_992_547_409_91n.toString(),
  '1987-03-14',
  '14.03.1987',
  'Lindenallee 17b, 01069 Dresden',
  '48.13743, 11.57549',
  '10.47.113.8',
  'fe80::1ff:fe23:4567:890a',
  'https://pay.example/r/7Hq2?token=PxW9',
  'M-QX 9042',
  'C01X00T47',
  'AB+',
  'pneumothorax',
  'Please ring the bell twice, the dog Wotan bites and the gate code is 5519.',
  '{"pin":"7731","answer":"Bratwurst"}',
  'line one\nline "two"\tof Xanthe',
  'C:\\Users\\mvogel\\diary.txt',
  '<b>Ignatius</b> & sons',
  'U+1F600 😀 smile-48213',
  'Zm9vYmFyLWJhei1xdXV4LTE3',
  'pass phrase: correct horse',
  'ORDER-of-the-garter-6620',
]

/** How a value looks in a text that has it, as it is or in one of the ways in which programs write it. */
export function leaksOf(secret: string | number, text: string): string[] {
  const value = String(secret)
  const low = text.toLowerCase()
  const forms = [
    value,
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(value),
    new URLSearchParams({ v: value }).toString().slice(2),
    ...base64Of(value),
    Buffer.from(value).toString('hex'),
    ...partsOf(value),
  ]
  // Digits stand in ids and times as well.
  const isThere = (form: string) =>
    /^\d+$/.test(form) ? new RegExp(`(?<![\\w.])${form}(?![\\w.])`).test(low) : low.includes(form.toLowerCase())
  return forms.filter((form) => form.length > 2 && isThere(form))
}

/** Wherever in a group it begins, what is in the middle is always the same. */
function base64Of(value: string): string[] {
  return [0, 1, 2]
    .map((offset) =>
      Buffer.from(' '.repeat(offset) + value)
        .toString('base64')
        .slice(offset === 0 ? 0 : 4, -4),
    )
    .filter((form) => form.length > 7)
}

/** Its beginning and its end, for what was cut off; of a name each of its parts. */
function partsOf(value: string): string[] {
  const words = value.split(/\s+/)
  return [
    ...(value.length > 12 ? [value.slice(0, 10), value.slice(-10)] : []),
    ...(words.length < 4 ? words.filter((word) => /^\p{L}{4,}$/u.test(word)) : []),
  ]
}

/** What an operator must be able to read whatever is hidden around it. */
export const diagnosis = ['revenue_by_day2', 'shipped_at', 'HTTP 503', '/srv/shop/orders-2.ts']

export function messageWith(text: string): string {
  return `relation "revenue_by_day2" has no column shipped_at, HTTP 503 from carrier in /srv/shop/orders-2.ts: ${text} was refused`
}
