import type { PageLimits } from '../log/log-store.ts'
import type { Share } from '../source/share.ts'
import { checkPage, type Source, type SourcePage } from '../source/source.ts'

/** Reads the pages of one share of a source, one of them ahead. */
export class Reading {
  readonly #source: Source
  readonly #share: Share
  readonly #signal: AbortSignal
  /** Our own log keeps its promises; anybody else's source is checked. */
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
   * Asks for the page after a full one while that is committed: the source need not wait for the store. Not behind the end: what is
   * announced later would not be in it, and whoever was woken for that would take it for what there is now.
   */
  readAhead({ events, through, isEnd }: SourcePage, limits: PageLimits): void {
    if (isEnd || events.length * 2 < limits.events || this.#end !== undefined) return
    const page = this.#source
      .read(through, limits, this.#signal, this.#share)
      // Asked again, in its own turn, if this failed.
      .catch(() => undefined)
    this.#ahead = { after: through, page }
  }

  /** A page that could not be taken yet. It is the end no more: what is announced meanwhile is not in it. */
  putBack(after: number, { events, through }: SourcePage): void {
    this.#ahead = { after, page: Promise.resolve({ events, through }) }
  }

  /** Where the next page must end, so that it is clear which of its events is to blame for something. */
  endBefore(position: number | undefined): void {
    this.#end = position
    this.#ahead = undefined
  }

  /** Everything that was read ahead may be wrong. */
  forget(): void {
    this.#ahead = undefined
  }
}
