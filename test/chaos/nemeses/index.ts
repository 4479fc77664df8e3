import type { Nemesis } from '../scene.ts'
import { fillDisk } from './disk.ts'
import { blackhole, cut, cutAfterCommit, cutBeforeCommit, delay, refuse } from './network.ts'
import { kill, stop } from './processes.ts'
import { revoke } from './rights.ts'
import { restart, terminate } from './server.ts'

export const nemeses: readonly Nemesis[] = [
  kill,
  stop,
  terminate,
  restart,
  cut,
  refuse,
  blackhole,
  delay,
  cutBeforeCommit,
  cutAfterCommit,
  fillDisk,
  revoke,
]
