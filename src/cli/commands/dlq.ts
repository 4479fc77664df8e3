import type { Command } from 'commander'
import type { Perform } from '../command.ts'
import { addActs } from './dlq-acts.ts'
import { addEdit } from './dlq-edit.ts'
import { addElsewhere } from './dlq-elsewhere.ts'
import { addLooks } from './dlq-looks.ts'
import { addPurge } from './dlq-purge.ts'
import { addShow } from './dlq-show.ts'

export function addDlq(program: Command, perform: Perform): void {
  const group = program.command('dlq').description('dead letters: see why events are held, test a fix, redrive')
  addLooks(group, perform)
  addShow(group, perform)
  addActs(group, perform)
  addEdit(group, perform)
  addPurge(group, perform)
  addElsewhere(group, perform)
}
