import { createPostgresStore } from 'holdfast/postgres'
import { createTemporaryStore } from 'holdfast/testing'
import { expect, it } from 'vitest'
import { storeError } from '../../src/postgres/connection/errors.ts'
import { Database } from '../../src/postgres/connection/database.ts'
import { loadDriver } from '../../src/postgres/connection/driver.ts'

const refusal = (address: string) =>
  Object.assign(new Error(`connect ECONNREFUSED ${address}`), { code: 'ECONNREFUSED' })

it('an error of several addresses says what each of them answered', () => {
  const both = Object.assign(new AggregateError([refusal('::1:5432'), refusal('127.0.0.1:5432')]), {
    code: 'ECONNREFUSED',
  })
  expect(storeError(both, 'PostgreSQL db:5432/shop')).toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/PostgreSQL db:5432\/shop can't be reached: connect ECONNREFUSED ::1:5432; connect/),
  })
})

it.each([
  [{ connectionString: 'postgres://me:geheim@db.example:6000/shop' }, 'PostgreSQL db.example:6000/shop'],
  [{ connectionString: 'postgres:///shop?host=/run/postgresql&password=geheim' }, 'PostgreSQL /run/postgresql/shop'],
  [{ host: 'db.example', port: 6000, database: 'shop', password: 'geheim' }, 'PostgreSQL db.example:6000/shop'],
  [{ host: 'db.example', user: 'me' }, 'PostgreSQL db.example/me'],
])('%j is called %s', async (connection, name) => {
  const db = new Database({ connection, schema: 'holdfast', connections: 2, driver: await loadDriver() })
  expect(db.name).toBe(name)
  await db.close()
})

it('a store that is closed is named', async () => {
  const store = await createTemporaryStore()
  await store.close()
  await expect(store.breakers.list()).rejects.toMatchObject({
    code: 'STORE_CLOSED',
    message: expect.stringContaining(store.file),
  })
})

it('a server that is not there is named, and its password is not', async () => {
  const refused = createPostgresStore({ connection: 'postgres://me:geheim@127.0.0.1:1/shop' })
  await expect(refused).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/^PostgreSQL 127\.0\.0\.1:1\/shop can't be reached: /),
  })
  await expect(refused).rejects.not.toThrow(/geheim/)
})
