import { describe, expect, it } from 'vitest'
import { endsTransaction, leavesTraces } from './transaction-words.ts'

describe('a statement that ends the transaction', () => {
  it.each([
    'COMMIT',
    'commit;',
    '  end ',
    'ABORT',
    'BEGIN',
    'begin isolation level serializable',
    'START TRANSACTION',
    'ROLLBACK',
    'ROLLBACK WORK',
    'rollback transaction and chain',
    'ROLLBACK PREPARED $$x$$',
    "COMMIT PREPARED 'x'",
    "PREPARE TRANSACTION 'x'",
    'SELECT 1; COMMIT',
    'INSERT INTO t VALUES (1);;commit',
    '/* a /* nested */ comment */ COMMIT',
    '-- a line\nCOMMIT',
    "-- a line that isn't closed\r\nCOMMIT",
    '/**/COMMIT/**/',
    "SELECT 'it''s'; COMMIT",
    String.raw`SELECT E'it\'s'; COMMIT`,
    String.raw`SELECT 'a\'; COMMIT; --'`,
    'SELECT $$;$$; COMMIT',
    'SELECT $a$ $b$ ; $a$; COMMIT',
    'SELECT "a;b"; COMMIT',
    'SELECT $1; COMMIT',
    'SELECT a$$b; COMMIT',
    'SELECT 1 AS é; COMMIT',
    'CREATE TABLE begin_ (n int); COMMIT',
    'CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; END; COMMIT',
    "SELECT 1; /* '*/ COMMIT /*'*/",
    "CREATE FUNCTION f(begin int) RETURNS int LANGUAGE sql AS 'SELECT 1'; COMMIT",
  ])('is seen: %s', (text) => {
    expect(endsTransaction(text)).toBe(true)
  })

  it.each([
    'SELECT 1',
    '',
    ';',
    'ROLLBACK TO here',
    'ROLLBACK TO SAVEPOINT here',
    'rollback work to savepoint here',
    'ROLLBACK TRANSACTION TO here',
    'SAVEPOINT commit_',
    'RELEASE here',
    'PREPARE p AS SELECT 1',
    "SELECT '; COMMIT'",
    "SELECT 'it''s; COMMIT'",
    String.raw`SELECT E'\'; COMMIT; '`,
    'SELECT $$; COMMIT;$$',
    'SELECT $tag$; COMMIT; $$ $tag$',
    'SELECT "; COMMIT"',
    '-- COMMIT',
    '/* ; COMMIT; */ SELECT 1',
    '/* /* ; */ COMMIT; */ SELECT 1',
    'SELECT CASE WHEN true THEN 1 END',
    'SELECT 1 AS commit',
    '(SELECT 1)',
    "INSERT INTO t (note) VALUES ('we commit; end')",
    'CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END',
    'DO $$ BEGIN PERFORM 1; END $$',
    'SET LOCAL x.y = 1',
    'SELECT 1 /* never closed ; COMMIT',
    "SELECT 'never closed; COMMIT",
  ])('is not seen in: %s', (text) => {
    expect(endsTransaction(text)).toBe(false)
  })
})

describe('a statement that leaves something behind', () => {
  it.each(['SET search_path = x', 'set session x.y = 1', 'RESET ALL', 'SELECT 1; LISTEN x', 'DEALLOCATE ALL'])(
    'is seen: %s',
    (text) => {
      expect(leavesTraces(text)).toBe(true)
    },
  )

  it.each(['SET LOCAL x.y = 1', 'SET CONSTRAINTS ALL DEFERRED', 'UPDATE t SET n = 1', "SELECT '; SET x = 1'"])(
    'is not seen in: %s',
    (text) => {
      expect(leavesTraces(text)).toBe(false)
    },
  )
})
