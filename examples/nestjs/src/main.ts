import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { HoldfastModule } from './holdfast.module.ts'
import { OrdersController } from './orders.controller.ts'

@Module({ imports: [HoldfastModule], controllers: [OrdersController] })
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'] })
// Without this call, Nest does not run shutdown hooks on SIGTERM, and the engine is not stopped cleanly.
app.enableShutdownHooks()
await app.listen(process.env['PORT'] ?? 3000)
console.log('listening on', await app.getUrl())
