import type { DatabaseSync } from 'node:sqlite'
import { HoldfastError } from '../../errors.ts'
import type { Database } from './database.ts'

const hint = 'Pass the DatabaseSync of node:sqlite in which you began a transaction, on the file of the store.'

/** A user's connection in a transaction on our file. Events written to another file would be lost. */
export function checkHandle(tx: unknown, db: Database): DatabaseSync {
  if (!isConnection(tx))
    throw new HoldfastError('TRANSACTION_INVALID', 'The tx of an append is not a connection.', { hint })
  if (!tx.isOpen || !tx.isTransaction)
    throw new HoldfastError('TRANSACTION_INVALID', 'The tx of an append is not in a transaction.', { hint })
  const file = tx.location()
  if (file !== db.handle.location())
    throw new HoldfastError(
      'TRANSACTION_INVALID',
      `The tx of an append is on ${file}, but the store is on ${db.file}.`,
      {
        hint,
      },
    )
  return tx
}

function isConnection(tx: unknown): tx is DatabaseSync {
  if (typeof tx !== 'object' || tx === null) return false
  const { prepare, exec, location } = tx as Partial<DatabaseSync>
  return [prepare, exec, location].every((method) => typeof method === 'function')
}
