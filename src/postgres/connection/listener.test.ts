import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { createProxy } from '../../../test/chaos/proxy.ts'
import { describeServers } from '../../../test/postgres/databases.ts'
import { useSchemas } from '../../../test/postgres/schemas.ts'
import { Database } from './database.ts'
import { loadDriver } from './driver.ts'
import { createListener } from './listener.ts'
import { presenceLock } from './locks.ts'

describeServers('the listener of a store', (server) => {
  const schemas = useSchemas(server)

  async function open(schema: string, url = schemas.url) {
    const connection = { connectionString: url, application_name: schema }
    const db = new Database({ driver: await loadDriver(), connection, schema, connections: 2 })
    const listener = createListener(db)
    const close = async () => {
      await listener.close()
      await db.close()
    }
    onTestFinished(close)
    return { db, listener, close }
  }

  const isHeld = async (presence: number | undefined) => {
    const { rows } = await schemas.user.query(
      "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = $1::bigint::oid AND objid = $2::bigint::oid",
      [presenceLock, presence],
    )
    return rows.length === 1
  }

  it('hears what other processes tell, and does not hear itself twice', async () => {
    const schema = schemas.newSchema()
    const [one, two, stranger] = [await open(schema), await open(schema), await open(schemas.newSchema())]
    const heard = { one: 0, two: 0, released: 0, stranger: 0 }
    one.listener.onAppend(() => heard.one++)
    two.listener.onAppend(() => heard.two++)
    two.listener.onRelease(() => heard.released++)
    stranger.listener.onAppend(() => heard.stranger++)
    await Promise.all([one, two, stranger].map(({ listener }) => listener.ready()))
    await Promise.resolve()
    Object.assign(heard, { one: 0, two: 0, released: 0, stranger: 0 })
    one.listener.notify('append')
    await expect.poll(() => heard.two).toBe(1)
    one.listener.notify('release')
    await expect.poll(() => heard.released).toBe(1)
    expect(heard).toEqual({ one: 1, two: 1, released: 1, stranger: 0 })
  })

  it('tells a burst a few times, and always the last of it', async () => {
    const schema = schemas.newSchema()
    const [one, two] = [await open(schema), await open(schema)]
    let heard = 0
    two.listener.onAppend(() => heard++)
    await two.listener.ready()
    await Promise.resolve()
    heard = 0
    for (let i = 0; i < 1_000; i++) one.listener.notify('append')
    await expect.poll(() => heard).toBeGreaterThan(1)
    expect(heard).toBeLessThan(20)
  })

  it('tells what is left to tell before it closes', async () => {
    const schema = schemas.newSchema()
    const [one, two] = [await open(schema), await open(schema)]
    let heard = 0
    two.listener.onAppend(() => heard++)
    await two.listener.ready()
    await Promise.resolve()
    heard = 0
    one.listener.notify('append')
    one.listener.notify('append')
    await one.close()
    await expect.poll(() => heard).toBe(2)
  })

  it('comes back after its session is ended, with the same number, and wakes everybody', async () => {
    const { listener } = await open(schemas.newSchema())
    const woken = { append: 0, release: 0, lost: 0 }
    listener.onAppend(() => woken.append++)
    listener.onRelease(() => woken.release++)
    listener.onLost(() => woken.lost++)
    await listener.ready()
    const { presence } = listener
    expect(await isHeld(presence)).toBe(true)
    Object.assign(woken, { append: 0, release: 0 })
    await schemas.user.query(
      "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = $1::bigint::oid",
      [presence],
    )
    await expect.poll(() => woken.lost).toBe(1)
    await listener.ready()
    expect(listener.presence).toBe(presence)
    expect(await isHeld(presence)).toBe(true)
    await Promise.resolve()
    expect(woken).toEqual({ append: 1, release: 1, lost: 1 })
  })

  it('takes another number when the server still takes its old session for alive', async () => {
    await using proxy = await createProxy({ url: schemas.url })
    const { listener } = await open(schemas.newSchema(), proxy.url)
    await listener.ready()
    const { presence } = listener
    // Somebody else has it before the listener comes back.
    await proxy.refuse(true)
    proxy.cut()
    await expect.poll(() => listener.presence).toBeUndefined()
    await expect.poll(() => isHeld(presence)).toBe(false)
    await schemas.user.query('SELECT pg_advisory_lock($1, $2)', [presenceLock, presence])
    onTestFinished(async () => {
      await schemas.user.query('SELECT pg_advisory_unlock($1, $2)', [presenceLock, presence])
    })
    await proxy.refuse(false)
    await listener.ready()
    expect(listener.presence).not.toBe(presence)
    expect(await isHeld(listener.presence)).toBe(true)
  })

  it('lets go of its number when it is closed', async () => {
    const { listener, close } = await open(schemas.newSchema())
    await listener.ready()
    const { presence } = listener
    await close()
    expect(listener.presence).toBeUndefined()
    await expect.poll(() => isHeld(presence)).toBe(false)
  })

  it('closes at once, also when nobody answers', async () => {
    await using proxy = await createProxy({ url: schemas.url })
    const one = await open(schemas.newSchema(), proxy.url)
    await one.listener.ready()
    proxy.blackhole(true)
    one.listener.notify('append')
    const begun = performance.now()
    await one.listener.close()
    expect(performance.now() - begun).toBeLessThan(2_000)
    const other = await open(schemas.newSchema(), 'postgres://nobody@127.0.0.1:1/nowhere')
    const ready = other.listener.ready()
    await other.close()
    await ready
  })

  it('loses its number with the process, however that dies', async () => {
    const script = fileURLToPath(new URL('../../../test/postgres/present.ts', import.meta.url))
    const child = fork(script, [schemas.url, schemas.newSchema()], { execArgv: [] })
    onTestFinished(() => void child.kill('SIGKILL'))
    const [presence] = (await once(child, 'message')) as [number]
    expect(await isHeld(presence)).toBe(true)
    child.kill('SIGKILL')
    await expect.poll(() => isHeld(presence)).toBe(false)
  })
})
