import { Body, Controller, Get, NotFoundException, Param, Post, ServiceUnavailableException } from '@nestjs/common'
import { read } from 'holdfast'
import { Holdfast } from './holdfast.module.ts'
import { customers } from './shop.ts'

@Controller()
export class OrdersController {
  constructor(private readonly holdfast: Holdfast) {}

  @Post('orders')
  async place(@Body() order: { id: string; email: string; total: number }): Promise<{ isNew: boolean }> {
    const data = { email: order.email, total: order.total }
    const placed = { id: `${order.id}-placed`, type: 'OrderPlaced', data } as const
    const { repeated } = await this.holdfast.log.append(order.id, [placed])
    return { isNew: !repeated }
  }

  @Get('customers/:email')
  async customer(@Param('email') email: string): Promise<{ orders: number; spent: number }> {
    const row = await read(this.holdfast.store, customers).get(email)
    if (!row) throw new NotFoundException('No orders yet.')
    return row.data
  }

  @Get('ready')
  async ready(): Promise<object> {
    const { subscriptions } = await this.holdfast.engine.status()
    const isReady = subscriptions.every(({ state, stored }) => state.state !== 'failed' && stored !== undefined)
    if (!isReady) throw new ServiceUnavailableException()
    return { isReady, subscriptions: subscriptions.map(({ name, state }) => ({ name, state: state.state })) }
  }
}
