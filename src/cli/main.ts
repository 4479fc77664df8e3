#!/usr/bin/env node
import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type CopyProgress, copyStore, HoldfastError } from '../index.ts'
import { toConfig } from '../postgres/connection.ts'
import { checkSchema } from '../postgres/identifier.ts'
import { createPostgresStore } from '../postgres/index.ts'
import { createSqliteStore } from '../sqlite/index.ts'
import { nodeSqlite } from '../sqlite/node.ts'

const usage = `holdfast copy <file> <postgres url> [--schema name] [--force] [--json]

  Copies a SQLite store into an empty PostgreSQL schema, whole or not at all, then reads both
  again and compares everything. First stop whoever appends to it or runs an engine on it; --force
  copies although somebody seems to.
`

/** 0: done. 1: it failed. 2: it was called wrongly. */
export async function main(args: readonly string[]): Promise<0 | 1 | 2> {
  const call = parse(args)
  if (typeof call === 'string') {
    process.stderr.write(`${call}\n\n${usage}`)
    return 2
  }
  if (call.help) {
    process.stdout.write(usage)
    return 0
  }
  let phase = 'copying' as CopyProgress['phase']
  try {
    checkIsStore(call.file)
    await using from = await createSqliteStore({ file: call.file })
    await using to = await createPostgresStore({ connection: call.url, schema: call.schema })
    const { counts, left } = await copyStore({
      from,
      to,
      force: call.force,
      onProgress: (progress) => {
        ;({ phase } = progress)
        const { event, row, letter } = progress.counts
        process.stderr.write(`${phase}: ${event} events, ${row} rows, ${letter} letters\n`)
      },
    })
    if (call.json) process.stdout.write(`${JSON.stringify({ ok: true, counts, left })}\n`)
    else {
      const told = Object.entries(counts).map(([kind, count]) => `${count} ${kind}s`)
      process.stdout.write(`Copied and compared: ${told.join(', ')}.\n`)
      for (const name of left)
        process.stdout.write(`${name} is SQL of your own: it begins anew there; make its tables first.\n`)
    }
    return 0
  } catch (error) {
    const { message } = error as Error
    const code = error instanceof HoldfastError ? error.code : undefined
    const isCopied = phase === 'comparing'
    const rest = isCopied
      ? `It was copied, but is not to be trusted. Throw the schema ${call.schema} away before you copy again.`
      : 'Nothing was copied.'
    if (call.json) process.stdout.write(`${JSON.stringify({ ok: false, code, message, isCopied })}\n`)
    else process.stderr.write(`${code ? `${code}: ` : ''}${message}\n${rest}\n`)
    return 1
  }
}

/** To open a store is to make one, or to bring it up to date; so nothing is opened that isn't one. */
function checkIsStore(file: string): void {
  if (!existsSync(file)) throw new Error(`There is no file ${file}.`)
  let isStore: boolean
  try {
    const { DatabaseSync } = nodeSqlite()
    const db = new DatabaseSync(file, { readOnly: true })
    isStore = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'holdfast_migrations'").get() !== undefined
    db.close()
  } catch (cause) {
    if (cause instanceof HoldfastError) throw cause
    throw new Error(`${file} is no store of Holdfast, or can't be read: ${(cause as Error).message}.`, { cause })
  }
  if (!isStore) throw new Error(`${file} is no store of Holdfast.`)
}

interface Call {
  readonly help: boolean
  readonly file: string
  readonly url: string
  readonly schema: string
  readonly force: boolean
  readonly json: boolean
}

/** What is asked for, or what is wrong with it. */
function parse(args: readonly string[]): Call | string {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        schema: { type: 'string', default: 'holdfast' },
        force: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    const [command, file = '', url = '', ...rest] = positionals
    if (!values.help && (command !== 'copy' || file === '' || url === '' || rest.length > 0)) return 'Called wrongly.'
    if (!values.help) {
      toConfig(url)
      checkSchema(values.schema)
    }
    return { ...values, file, url }
  } catch (error) {
    return (error as Error).message
  }
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2))
