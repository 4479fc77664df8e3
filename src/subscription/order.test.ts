import { describe, expect, it } from 'vitest'
import type { HandlerOrder } from '../handler/handler.ts'
import { checkOrder, type OrderFacts } from './order.ts'

const free: OrderFacts = { recorded: undefined, lanes: 0, keyedLanes: 0, owner: undefined }
const orders: readonly HandlerOrder[] = ['key', 'partition', 'none']

function codeOf(order: HandlerOrder, facts: Partial<OrderFacts>): string {
  try {
    checkOrder('calls', order, { ...free, ...facts })
    return 'goes on'
  } catch (error) {
    return (error as { code: string }).code
  }
}

describe('a change of order', () => {
  it('goes on while nothing is held and no process runs it', () => {
    for (const recorded of [undefined, ...orders])
      for (const order of orders) expect(codeOf(order, { recorded })).toBe('goes on')
  })

  it('is refused while lanes are held, and while a process runs it', () => {
    for (const recorded of orders) {
      for (const order of orders) {
        const is = recorded === order ? 'goes on' : 'ORDER_CHANGED'
        expect(codeOf(order, { recorded, lanes: 1, keyedLanes: 1 })).toBe(is)
        expect(codeOf(order, { recorded, lanes: 1 })).toBe(is)
        expect(codeOf(order, { recorded, owner: 'other' })).toBe(is)
      }
    }
  })

  it('says what is in the way, and what to do', () => {
    expect(() => checkOrder('calls', 'key', { ...free, recorded: 'none', lanes: 2 })).toThrow(
      "2 lanes are held for calls with order: 'none', but this program has order: 'key'. Run it with order: 'none' until they are redriven",
    )
    expect(() => checkOrder('calls', 'none', { ...free, recorded: 'key', owner: 'host/7' })).toThrow(
      "The process host/7 runs calls with order: 'key', but this program has order: 'none'. Stop all processes",
    )
  })

  it('is told by the held lanes where no order is recorded', () => {
    expect(codeOf('none', { lanes: 2 })).toBe('goes on')
    expect(codeOf('key', { lanes: 2 })).toBe('ORDER_CHANGED')
    expect(codeOf('partition', { lanes: 2 })).toBe('ORDER_CHANGED')
    expect(codeOf('none', { lanes: 2, keyedLanes: 1 })).toBe('ORDER_CHANGED')
    expect(codeOf('key', { lanes: 2, keyedLanes: 1 })).toBe('goes on')
    expect(codeOf('partition', { lanes: 2, keyedLanes: 2 })).toBe('goes on')
    expect(codeOf('key', { lanes: 2, keyedLanes: 2, owner: 'other' })).toBe('goes on')
  })
})
