import { createServer, connect, type Socket } from 'node:net'

/** A TCP proxy that can hold back what the server answers on connections that sent a certain text. */
export async function startProxy(url: string) {
  const target = new URL(url)
  let needle: string | undefined
  let held: { socket: Socket; chunks: Buffer[] } | undefined
  let caught = Promise.withResolvers<void>()
  const sockets = new Set<Socket>()
  let refuse = 0
  const server = createServer((client) => {
    if (refuse > 0) {
      refuse--
      client.destroy()
      return
    }
    const upstream = connect(Number(target.port), target.hostname)
    sockets.add(client).add(upstream)
    client.setNoDelay(true)
    upstream.setNoDelay(true)
    client.on('data', (data) => {
      if (needle !== undefined && !held && data.includes(needle)) held = { socket: client, chunks: [] }
      upstream.write(data)
    })
    upstream.on('data', (data) => {
      if (held?.socket === client) {
        held.chunks.push(data)
        caught.resolve()
      } else client.write(data)
    })
    const end = () => (client.destroy(), upstream.destroy())
    for (const s of [client, upstream]) s.on('error', end).on('close', end)
  })
  await new Promise<void>((r) => server.listen(0, '127.0.0.1', r))
  const mine = new URL(url)
  mine.port = String((server.address() as { port: number }).port)
  return {
    url: mine.href,
    /** Resolves when the server has answered the next such query; the answer is kept until `release`. */
    hold(text: string): Promise<void> {
      needle = text
      held = undefined
      caught = Promise.withResolvers()
      return caught.promise
    },
    release(): void {
      const was = held
      needle = undefined
      held = undefined
      for (const chunk of was?.chunks ?? []) was?.socket.write(chunk)
    },
    refuseNext(n: number): void {
      refuse = n
    },
    /** The number of connections that neither side has closed. */
    get open(): number {
      return [...sockets].filter((socket) => !socket.destroyed).length / 2
    },
    cut(): void {
      for (const s of sockets) s.destroy()
    },
    async [Symbol.asyncDispose]() {
      for (const s of sockets) s.destroy()
      server.close()
    },
  }
}
