// Prints the SQL for three roles on the schema: node roles.ts | psql "$DATABASE_URL"
import { rolesSql } from 'holdfast/postgres'

console.log(rolesSql({ schema: 'bank', migrator: 'bank_migrator', engine: 'bank_engine', reader: 'bank_reader' }))
