// Backs up a store that is in use: node sqlite.ts shop.db shop-backup.db
import { DatabaseSync } from 'node:sqlite'

const [file = 'shop.db', target = 'shop-backup.db'] = process.argv.slice(2)
const db = new DatabaseSync(file, { readOnly: true, timeout: 5_000 })
// Writes a consistent snapshot to one file, without free pages. Fails if the target exists.
db.prepare('VACUUM INTO ?').run(target)
db.close()
