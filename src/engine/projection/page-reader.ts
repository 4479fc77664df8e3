import type { PageLimits } from '../../log/log-store.ts'
import type { Share } from '../../source/share.ts'
import { checkPage, type Source, type SourcePage } from '../../source/source.ts'

/** Reads the pages of one partition of a source, and prefetches one. */
export class PageReader {
  readonly #source: Source
  readonly #share: Share
  readonly #signal: AbortSignal
  /** Pages of other sources than our own log are checked. */
  readonly #isForeign: boolean
  #ahead: { readonly after: number; readonly page: Promise<SourcePage | undefined> } | undefined
  #end: number | undefined

  constructor(source: Source, share: Share, isForeign: boolean, signal: AbortSignal) {
    this.#source = source
    this.#share = share
    this.#isForeign = isForeign
    this.#signal = signal
  }

  async read(after: number, limits: PageLimits): Promise<SourcePage> {
    const ahead = this.#ahead?.after === after ? await this.#ahead.page : undefined
    this.#ahead = undefined
    const page = ahead ?? (await this.#source.read(after, limits, this.#signal, this.#share))
    if (this.#isForeign) checkPage(this.#source, after, page)
    const end = this.#end
    if (end === undefined || page.through < end) return page
    const events = page.events.filter(({ position }) => position < end)
    return { events, through: events.at(-1)?.position ?? after }
  }

  /**
   * Prefetches the next page while a full one is committed, so that the source need not wait for the store. Not at the end of the source:
   * a page read there would miss events that are announced later.
   */
  readAhead({ events, through, isEnd }: SourcePage, limits: PageLimits): void {
    if (isEnd || events.length * 2 < limits.events || this.#end !== undefined) return
    const page = this.#source
      .read(through, limits, this.#signal, this.#share)
      // A failed prefetch is repeated as a normal read.
      .catch(() => undefined)
    this.#ahead = { after: through, page }
  }

  /** Returns a page that could not be processed yet. It no longer counts as the end: newer events may have been announced since. */
  putBack(after: number, { events, through }: SourcePage): void {
    this.#ahead = { after, page: Promise.resolve({ events, through }) }
  }

  /** Ends the next page before a position, so that a failure can be attributed to one event. */
  endBefore(position: number | undefined): void {
    this.#end = position
    this.#ahead = undefined
  }

  /** Drops the prefetched page. */
  forget(): void {
    this.#ahead = undefined
  }
}
