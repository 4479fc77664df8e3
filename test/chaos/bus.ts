/** Reports of several processes in one place. */
export class Bus<Report> {
  readonly #listeners = new Set<(report: Report) => void>()

  /** Returns what ends the listening. */
  listen(listener: (report: Report) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  publish(report: Report): void {
    for (const listener of this.#listeners) listener(report)
  }

  /** The first report from now on that fits, or undefined if there is none in time. */
  next(fits: (report: Report) => boolean, timeoutMs: number): Promise<Report | undefined> {
    return new Promise((resolve) => {
      const end = (report?: Report) => {
        clearTimeout(timer)
        unlisten()
        resolve(report)
      }
      const unlisten = this.listen((report) => {
        if (fits(report)) end(report)
      })
      const timer = setTimeout(end, timeoutMs)
    })
  }
}
