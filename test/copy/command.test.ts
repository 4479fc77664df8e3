import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createLog } from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { describeServers } from '../postgres/databases.ts'
import { useSchemas } from '../postgres/schemas.ts'
import { counts, makeOriginal } from './original.ts'
import { startCommand, startEngineProcess } from './run.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-command-'))
const file = join(folder, 'original.db')
const nowhere = 'postgres://nobody:secret@127.0.0.1:1/nothing'

beforeAll(async () => {
  await makeOriginal(file)
})
afterAll(() => rmSync(folder, { recursive: true }))

const run = (...args: string[]) => startCommand(args).ended

describe('holdfast copy', () => {
  test.each([
    [[]],
    [['copy']],
    [['copy', file]],
    [['copy', file, nowhere, 'more']],
    [['move', file, nowhere]],
    [['copy', file, nowhere, '--quickly']],
    [['copy', file, nowhere, '--schema', 'Not a name']],
    [['copy', file, 'https://example.com']],
    [['copy', nowhere, file]],
  ])('called with %j says how it is called, with exit code 2', async (args) => {
    const { code, stdout, stderr } = await run(...args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^[A-Z_]+: .+\nNext: /)
    expect(stderr).not.toContain('    at ')
    expect(stderr).not.toContain('secret')
  })

  test('says how it is called when it is asked', async () => {
    expect(await run('copy', '--help')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('holdfast copy [options] <file> <url>'),
      stderr: '',
    })
  })

  test('makes no file where there is none', async () => {
    const missing = join(folder, 'missing.db')
    const { code, stdout, stderr } = await run('copy', missing, nowhere)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^STORE_MISSING: The file .*missing\.db does not exist\.\n/)
    expect(existsSync(missing)).toBe(false)
  })

  test('leaves alone what is no store', async () => {
    const letter = join(folder, 'letter.txt')
    writeFileSync(letter, 'Dear Ada, this is no database at all.')
    const empty = join(folder, 'empty.db')
    writeFileSync(empty, '')
    const other = join(folder, 'other.db')
    const db = new DatabaseSync(other)
    db.exec('CREATE TABLE precious (thing TEXT)')
    db.close()
    for (const path of [letter, empty, other, folder]) {
      const before = path === folder ? '' : readFileSync(path)
      const { code, stdout, stderr } = await run('copy', path, nowhere)
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toContain(`${path} is ${path === folder ? 'a directory' : 'not a Holdfast store'}`)
      expect(path === folder ? '' : readFileSync(path)).toEqual(before)
    }
  })

  test.each([[[]], [['--json']]])('tells in a sentence that there is no server, %j', async (more) => {
    const { code, stdout, stderr } = await run('copy', file, nowhere, ...more)
    expect(code).toBe(1)
    expect(stdout + stderr).toContain('STORE_UNAVAILABLE')
    expect(stdout + stderr).toContain('127.0.0.1:1/nothing')
    expect(stdout + stderr).not.toContain('secret')
    expect(stdout + stderr).not.toContain('    at ')
  })
})

describeServers('holdfast copy', (server) => {
  const schemas = useSchemas(server)

  test('tells what it copied, and what it left', async () => {
    const schema = schemas.newSchema()
    const { code, stdout, stderr } = await run('copy', file, schemas.url, '--schema', schema)
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout:
        'Copied and compared: 6 subscriptions, 13 events, 11 rows, 12 lanes, 22 letters, ' +
        '2 revisions, 1 incident, 2 redrives, 7 lanes of redrives, 122 marks, 2 breakers, 10 entries of the audit.\n' +
        'journal uses its own SQL: it starts from the beginning. Create its tables first.\n',
    })
    expect(stderr).toMatch(/^copying: 0 events/m)
    expect(stderr).toMatch(/^comparing: 0 events/m)
    expect(await eventsIn(schema)).toBe(13)
  })

  test('tells it to programs, on stdout alone', async () => {
    const { code, stdout } = await run('copy', file, schemas.url, '--schema', schemas.newSchema(), '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ ok: true, counts, left: ['journal'] })
  })

  test('refuses a schema that has something in it', async () => {
    const schema = schemas.newSchema()
    await using store = await schemas.open(schema)
    await createLog({ store }).append('k', [{ type: 'Mine', data: {} }])
    const copy = ['copy', file, schemas.url, '--schema', schema]
    for (const args of [copy, [...copy, '--force']]) {
      const { code, stdout, stderr } = await run(...args)
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(/^STORE_NOT_EMPTY: /m)
    }
    const { stdout } = await run(...copy, '--json')
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, error: { code: 'STORE_NOT_EMPTY' }, isCopied: false })
    expect(await eventsIn(schema)).toBe(1)
  })

  test('refuses a file on which an engine works, unless it is forced to', async () => {
    const schema = schemas.newSchema()
    const engine = await startEngineProcess(file)
    try {
      const refused = await run('copy', file, schemas.url, '--schema', schema)
      expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^STORE_IN_USE: /m) })
      expect(refused.stderr).toMatch(/Nothing was copied\.\n$/)
      expect(await eventsIn(schema)).toBe(0)
      expect(await run('copy', file, schemas.url, '--schema', schema, '--force')).toMatchObject({ code: 0 })
    } finally {
      engine.kill('SIGKILL')
    }
  })

  test('killed with -9 in the middle leaves nothing, and the next one finds all', async () => {
    const large = join(folder, `${schemas.newSchema()}.db`)
    await using store = await createSqliteStore({ file: large })
    const log = createLog({ store })
    for (let i = 0; i < 300; i++)
      await log.append(
        `k${i}`,
        Array.from({ length: 100 }, () => ({ type: 'Small', data: { i } }) as const),
      )
    const schema = schemas.newSchema()
    const command = startCommand(['copy', large, schemas.url, '--schema', schema])
    await vi.waitFor(() => expect(command.output.stderr).toMatch(/copying: [1-9]/), { timeout: 20_000, interval: 2 })
    command.process.kill('SIGKILL')
    const { code, stderr } = await command.ended
    expect(code).toBe(null)
    expect(stderr).not.toContain('comparing')
    expect(await eventsIn(schema)).toBe(0)
    const second = await run('copy', large, schemas.url, '--schema', schema, '--json')
    expect(JSON.parse(second.stdout)).toMatchObject({ ok: true, counts: { event: 30_000 } })
    expect(await eventsIn(schema)).toBe(30_000)
  })

  test('says so when it was copied but not compared to the end', async () => {
    const schema = schemas.newSchema()
    await (await schemas.open(schema)).close()
    // Whoever reads the copy finds something else than what was written.
    await schemas.user.query(`
      CREATE FUNCTION ${schema}.spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.time := 'never'; RETURN NEW; END $$;
      CREATE TRIGGER spoil BEFORE INSERT ON ${schema}.holdfast_events FOR EACH ROW EXECUTE FUNCTION ${schema}.spoil()`)
    const { code, stdout, stderr } = await run('copy', file, schemas.url, '--schema', schema)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^COPY_DIFFERS: /m)
    expect(stderr).not.toContain('Nothing was copied')
    expect(stderr).toContain(`Drop the schema ${schema}`)
  })

  async function eventsIn(schema: string): Promise<number> {
    const { rows } = await schemas.user.query<{ count: number }>(
      `SELECT count(*)::integer AS count FROM ${schema}.holdfast_events`,
    )
    return rows[0]?.count ?? Number.NaN
  }
})
