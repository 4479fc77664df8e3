import { describe, expect, it } from 'vitest'
import { createHolder } from '../../src/sqlite/connection/holder.ts'
import { claimFrom } from './claim-from.ts'

const self = createHolder()

// Two containers that share a volume and the network of their host have the same host name, and in both the process is number 1.
describe.runIf(process.platform === 'linux')('on SQLite, the owner of a partition', () => {
  it('keeps it while another container with its host name and process id runs', async () => {
    const other = { namespace: 'pid:[1]', began: self.began - 60_000, ticks: '1' }
    expect(await claimFrom(other)).toBe('owned')
    expect(await claimFrom({ ...other, pid: 999_999_999 })).toBe('owned')
  })

  it('is dead if a later process of its container has its id, even if that started at the same second', async () => {
    expect(await claimFrom({ ticks: '1' })).toBe('claimed')
    expect(await claimFrom({ pid: 999_999_999 })).toBe('claimed')
    expect(await claimFrom({})).toBe('owned')
  })
})
