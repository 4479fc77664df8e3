import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'
import { createPostgresStore } from 'holdfast/postgres'
import { describe, expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { describeServers } from '../postgres/databases.ts'

const hint = expect.stringMatching(/password.*sslmode/) as string

describeServers('a connection that cannot be set up as it is configured', (server) => {
  const changed = (change: (url: URL) => void) => {
    const url = new URL(server.url)
    change(url)
    return url.href
  }
  const wrong = {
    'without a password': changed((url) => void (url.password = '')),
    'with TLS, which the server does not have': changed((url) => url.searchParams.set('sslmode', 'require')),
  }

  it.for(Object.entries(wrong))('is not an outage: %s', async ([, connection]) => {
    await expect(createPostgresStore({ connection })).rejects.toMatchObject({ code: 'STORE_MISCONFIGURED', hint })
    using place = createPlace()
    const { code, stderr } = await place.call(['start'], { env: { HOLDFAST_STORE: connection } })
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^STORE_MISCONFIGURED: .*\nNext: .*password.*sslmode/) as string,
    })
  })

  it('can be an outage if the password is a function: what it asks may be down', async () => {
    const password = async () => {
      throw new Error('The service of tokens is down.')
    }
    const { hostname, port } = new URL(server.url)
    const connection = { host: hostname, port: Number(port), user: 'postgres', database: 'postgres', password }
    await expect(createPostgresStore({ connection })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })
})

/** A port that does with a connection what it is told to. */
async function listen(react: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  const listener = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    react(socket)
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  return {
    url: `postgres://postgres:secret@127.0.0.1:${(listener.address() as AddressInfo).port}/postgres`,
    [Symbol.dispose]: () => {
      for (const socket of sockets) socket.destroy()
      listener.close()
    },
  }
}

const hasOpenssl = spawnSync('openssl', ['version']).status === 0

function createCertificate() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-certificate-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const args = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=elsewhere.example']
  execFileSync('openssl', [...args, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  const made = { key: readFileSync(key), cert: readFileSync(cert) }
  rmSync(folder, { recursive: true })
  return made
}

describe('a connection that is never ready', () => {
  // What a proxy does whose server is down, and a server that ends while it starts a session.
  it('is an outage if the server closes it', async () => {
    using port = await listen((socket) => socket.once('data', () => socket.destroy()))
    for (const mode of ['disable', 'no-verify'])
      await expect(createPostgresStore({ connection: `${port.url}?sslmode=${mode}` })).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
      })
  })

  it('is an outage if the server does not answer', async () => {
    using port = await listen(() => undefined)
    const connection = { connectionString: port.url, connectionTimeoutMillis: 100 }
    await expect(createPostgresStore({ connection })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })

  it.runIf(hasOpenssl)('is configuration if its certificate is not the expected one', async () => {
    const certificate = createCertificate()
    using port = await listen((socket) =>
      socket.once('data', () => {
        socket.write('S')
        new TLSSocket(socket, { isServer: true, ...certificate }).on('error', () => undefined)
      }),
    )
    const trusted = { rejectUnauthorized: true, ca: certificate.cert }
    for (const [ssl, code] of [
      [{ rejectUnauthorized: true }, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
      [trusted, 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ] as const) {
      const connection = { connectionString: port.url, ssl }
      await expect(createPostgresStore({ connection })).rejects.toMatchObject({
        code: 'STORE_MISCONFIGURED',
        hint,
        cause: { code },
      })
    }
  })
})
