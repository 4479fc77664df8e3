import { createPostgresStore } from 'holdfast/postgres'
import { expect, it } from 'vitest'
import { describeServers } from '../postgres/databases.ts'
import { startProxy } from './proxy.ts'

// pg forgets a connection that it gives up while it is set up, and leaves it open. The server waits for its answer for a minute, and
// meanwhile nobody can create or drop a database.
describeServers('a connection that is given up while it is set up', (server) => {
  const password = async () => {
    throw new Error('The service of tokens is down.')
  }

  it.for([
    ['without a password', { password: undefined }],
    ['with a password that could not be had', { password }],
  ] as const)('is closed: %s', async ([, { password: given }]) => {
    await using proxy = await startProxy(server.url)
    const { hostname, port } = new URL(proxy.url)
    const connection = {
      host: hostname,
      port: Number(port),
      user: 'postgres',
      database: 'postgres',
      ...(given && { password: given }),
    }
    await expect(createPostgresStore({ connection })).rejects.toMatchObject({
      code: expect.stringMatching(/^STORE_(MISCONFIGURED|UNAVAILABLE)$/) as string,
    })
    await expect.poll(() => proxy.open, { timeout: 5_000 }).toBe(0)
  })
})
