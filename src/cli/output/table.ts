import { bold, fit, type Text, widthOf } from './style.ts'

export interface Column {
  readonly title: string
  /** Aligned right, for numbers. */
  readonly right?: true
}

const gap = 2
// A narrower cell is unreadable; the line becomes too long instead.
const narrowest = 8

/** The lines of a table. With `width`, the widest columns shrink first until the table fits. */
export function tableLines(columns: readonly Column[], rows: readonly (readonly Text[])[], width?: number): Text[] {
  const widths = columns.map(({ title }, i) => Math.max(widthOf(title), ...rows.map((row) => widthOf(row[i] ?? ''))))
  if (width !== undefined) shrink(widths, width - gap * (columns.length - 1))
  const line = (cells: readonly Text[]) =>
    cells.map((cell, i): Text => {
      const room = widths[i] ?? 0
      const shown = fit(cell, room)
      const pad = ' '.repeat(Math.max(0, room - widthOf(shown)))
      const isLast = i === columns.length - 1
      const between = isLast ? '' : ' '.repeat(gap)
      return columns[i]?.right ? [pad, shown, between] : [shown, isLast ? '' : pad, between]
    })
  return [line(columns.map(({ title }) => bold(title))), ...rows.map(line)]
}

function shrink(widths: number[], room: number): void {
  for (let over = widths.reduce((sum, each) => sum + each, 0) - room; over > 0; over--) {
    const widest = widths.indexOf(Math.max(...widths))
    if ((widths[widest] ?? 0) <= narrowest) return
    widths[widest] = (widths[widest] ?? 0) - 1
  }
}
