// The configuration of `holdfast start` in a pod, with the two HTTP endpoints for probes.
import { createServer } from 'node:http'
import { defineConfig } from 'holdfast'
import { health } from '../express/health.ts'
import { customers, receipts, shop } from '../express/shop.ts'

const { DATABASE_URL = 'postgres://localhost/shop', MAIL_URL = 'http://mail/send', HEALTH_PORT = '8080' } = process.env

export default defineConfig({
  store: { postgres: DATABASE_URL },
  events: shop,
  subscriptions: [customers, receipts(MAIL_URL)],
  onEngine: (engine) => {
    const server = createServer((request, response) => {
      const answer = request.url === '/ready' ? health(engine) : Promise.resolve({ isReady: true })
      const send = (status: number, body: object) => response.writeHead(status).end(JSON.stringify(body))
      answer.then(
        (report) => send(report.isReady ? 200 : 503, report),
        () => send(503, { isReady: false }),
      )
    })
    // The probe server must not keep the process alive after the engine has stopped.
    server.listen(Number(HEALTH_PORT)).unref()
  },
})
