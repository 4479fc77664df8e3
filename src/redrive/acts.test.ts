import { expect, it } from 'vitest'
import { isActedOn } from './acts.ts'
import { redriveActs } from './redrive.ts'

it('says which lanes an act is about', () => {
  const actsOn = (status: 'parked' | 'retrying' | 'waiting', breaker?: string) =>
    redriveActs.filter((act) => isActedOn(act, { status, breaker }))
  expect(actsOn('parked')).toEqual(['redrive', 'discard', 'resolve'])
  expect(actsOn('retrying')).toEqual(['redrive', 'discard', 'resolve'])
  expect(actsOn('waiting', 'notify:x')).toEqual(['discard', 'resolve'])
  expect(actsOn('waiting')).toEqual(['skip'])
})
