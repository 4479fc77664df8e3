import { expect, it } from 'vitest'
import { describeServers } from '../../../test/postgres/databases.ts'
import { useSchemas } from '../../../test/postgres/schemas.ts'
import { describeFailure } from '../../failure/failure.ts'
import { Database } from '../connection/database.ts'
import { loadDriver } from '../connection/driver.ts'
import { migrate } from './migrate.ts'
import { migrations } from './index.ts'

describeServers('migrations', (server) => {
  const schemas = useSchemas(server)

  it('bring up a schema from before there were handlers, whatever somebody put over it', async () => {
    const schema = schemas.newSchema()
    const connection = { connectionString: schemas.url }
    const old = new Database({ driver: await loadDriver(), connection, schema, connections: 2 })
    await migrate(old, migrations.slice(0, 1))
    await old.close()
    const failureOf = (message: string) => ({
      ...describeFailure(new Error(message), 'permanent', 'fold'),
      stack: null,
    })
    const attempts = JSON.stringify([
      { at: 15, failure: failureOf('first \u0000') },
      { at: 16, failure: failureOf('second {"at":99,"failure":') },
    ])
    await schemas.user.query(`
      INSERT INTO ${schema}.holdfast_events (version, schema_version, slot, id, key, type, time, data)
        VALUES (1, 1, 0, 'e1', 'a', 'T', 't', '1');
      INSERT INTO ${schema}.holdfast_subscriptions (name, table_name, columns, partitions)
        VALUES ('s', 's', '[]', 1), ('t', NULL, '[]', 1);
      INSERT INTO ${schema}.holdfast_partitions (subscription, partition, epoch, owner, start, position, held)
        VALUES ('s', 0, 3, 'one', 0, 9, 2), ('t', 0, 0, NULL, 5, 5, 0);
      INSERT INTO ${schema}.holdfast_lanes VALUES ('s', 'a', 0, 0, 'retrying', 12, 1, 1), ('s', 'b', 0, 3, NULL, NULL, NULL, NULL);
      INSERT INTO ${schema}.holdfast_letters (subscription, partition, position, status, logged, held_at, lane, sequence, event_id,
        is_text, data, ended_at, ended_by, fingerprint, attempts)
        VALUES ('s', 0, 1, 'retrying', true, 12, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
          ('s', 0, 7, 'resolved', false, 14, 'b', 4, 'x7', true, '007', 20, 'me', 'f', '${attempts}');
      CREATE VIEW ${schema}.mine AS SELECT * FROM ${schema}.holdfast_dead_letters;
      CREATE ROLE ${schema}_reader; GRANT SELECT ON ${schema}.holdfast_dead_letters TO ${schema}_reader`)
    const tables = ['subscriptions', 'partitions', 'lanes', 'letters', 'dead_letters'].map((name) => `holdfast_${name}`)
    const everything = () =>
      Promise.all(
        [...tables, 'mine'].map(async (name) => {
          return (await schemas.user.query(`SELECT * FROM ${schema}.${name} ORDER BY 1, 2, 3`)).rows as object[]
        }),
      )
    const before = await everything()

    await using store = await schemas.open(schema)
    expect(await everything()).toMatchObject(before)
    const { rows } = await schemas.user.query(
      `SELECT has_table_privilege('${schema}_reader', '${schema}.holdfast_dead_letters', 'SELECT') AS may`,
    )
    expect(rows).toEqual([{ may: true }])
    expect(await store.subscriptions.load('s', 0)).toMatchObject({ epoch: 3, marks: [], tried: undefined, trials: [] })
    const lane = { lane: 'a', status: 'retrying', since: 12, done: 0, head: 1, headPosition: 1 }
    expect(await store.letters.heldLanes('s', 0)).toStrictEqual([lane])
    expect(await store.letters.list({ subscription: 's' })).toMatchObject([
      { status: 'retrying', event: { id: 'e1', body: '1' }, endedReason: undefined },
      { status: 'resolved', event: { id: 'x7', body: '007' }, endedBy: 'me', endedReason: undefined, attemptsTotal: 2 },
    ])
    // What was tried before there was a column for it.
    expect(await store.letters.incidents({ subscription: 's', limit: 9 })).toMatchObject([
      { fingerprint: 'f', state: 'resolved', firstSeen: 14, lastSeen: 16, letters: 1, samples: [7] },
    ])
    const [view] = await store.subscriptions.attend({ owner: 'one', subscriptions: ['s'], leaseMs: 1_000 })
    expect(view?.partitions).toMatchObject([{ isDue: true }])
    const spec = { name: 't', table: undefined, start: 0, partitions: undefined }
    expect(await store.subscriptions.register(spec)).toEqual({ partitions: 1, version: 1 })
    await expect(store.subscriptions.register({ ...spec, kind: 'handler' })).rejects.toThrow(
      'The subscription t was a SQL projection and is a handler now.',
    )
    await schemas.user.query(`DROP OWNED BY ${schema}_reader; DROP ROLE ${schema}_reader`)
  })
})
