import { once } from 'node:events'
import { createServer } from 'node:net'

const first = 20_000
const last = 32_000

/**
 * Below the ports that systems give to outgoing connections: from there a client that knocks at a stopped server could
 * be given the server's own port, talk to itself, and keep the server from starting again.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = first + Math.floor(Math.random() * (last - first))
    const listener = createServer().listen(port, '127.0.0.1')
    try {
      await once(listener, 'listening')
    } catch {
      continue
    }
    listener.close()
    await once(listener, 'close')
    return port
  }
}
