import type { Moment, Outcome, Shown } from './run.ts'

const step = 76
const left = 84
const signs: Record<Outcome, string> = { applied: '✓', parked: '✕', queued: '…' }
const keys = ['alice', 'bob', 'carol']

/** Two moments of the same three lanes, side by side in time: held, and released. */
export function draw({ held, released }: { readonly held: Moment; readonly released: Moment }): string {
  const width = left + held.events.length * step + 110
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} 356" width="${width}" role="img" aria-labelledby="title">
  <title id="title">One event of bob fails: his later events wait behind it, alice and carol are not affected. After an edit and a redrive they are applied in order.</title>
  <style>
    text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #24292f }
    .small { font-size: 11px; fill: #57606a }
    .lane { stroke: #d0d7de; stroke-width: 2 }
    .applied { fill: #dafbe1; stroke: #1a7f37 }
    .parked { fill: #ffebe9; stroke: #cf222e }
    .queued { fill: #fff8c5; stroke: #9a6700; stroke-dasharray: 4 3 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .small { fill: #9198a1 } .lane { stroke: #3d444d }
      .applied { fill: #12261e; stroke: #3fb950 } .parked { fill: #25171c; stroke: #f85149 } .queued { fill: #272115; stroke: #d29922 }
    }
  </style>
${panel(held, 0, 'b2 fails: its lane is held, later events of bob queue behind it, other keys are not affected')}
${panel(released, 182, 'holdfast dlq edit, holdfast dlq redrive: bob is applied in order, once')}
</svg>
`
}

function panel({ events, balances }: Moment, top: number, title: string): string {
  const end = left + events.length * step
  const lanes = keys.map((key, i) => {
    const y = top + 62 + i * 42
    const own = events.map((event, at) => ({ event, x: left + at * step })).filter(({ event }) => event.key === key)
    return [
      `  <text x="12" y="${y + 5}">${key}</text>`,
      `  <line class="lane" x1="${left - 14}" y1="${y}" x2="${end}" y2="${y}"/>`,
      ...own.map(({ event, x }) => box(event, x, y)),
      `  <text x="${end + 12}" y="${y + 5}">${balances[key] ?? '–'}</text>`,
    ].join('\n')
  })
  const heads = [
    `  <text x="12" y="${top + 24}">${title}</text>`,
    `  <text class="small" x="${end + 12}" y="${top + 24}">balance</text>`,
  ]
  return [...heads, ...lanes].join('\n')
}

function box({ id, outcome }: Shown, x: number, y: number): string {
  return [
    `  <rect class="${outcome}" x="${x}" y="${y - 14}" width="58" height="28" rx="5"/>`,
    `  <text x="${x + 8}" y="${y + 5}">${id} ${signs[outcome]}</text>`,
  ].join('\n')
}
