// Servers that Skillstack cannot play on: node other_server.js FOLDER_OF_PACKAGES old | strict. Ends with its input.
'use strict'

const { createRequire } = require('module')
const [, , folder, kind] = process.argv
const load = createRequire(folder + '/bridge.js')
const say = port => process.stderr.write(JSON.stringify({ port }) + '\n')

process.stdin.on('end', () => process.exit(0)).resume()
const common = { host: '127.0.0.1', port: 0, 'online-mode': false, motd: kind }

if (kind === 'old') {
  const server = load('minecraft-protocol').createServer({ ...common, version: '1.12.2' })
  server.on('listening', () => say(server.socketServer.address().port))
} else {
  const server = load('flying-squid').createMCServer({
    ...common,
    version: '1.16.5',
    'everybody-op': false,
    'max-players': 4,
    'max-entities': 100,
    'view-distance': 2,
    gameMode: 1,
    difficulty: 0,
    noConsoleOutput: true,
    generation: { name: 'superflat', options: { seed: 0 } },
    plugins: {},
    'player-list-text': { header: { text: '' }, footer: { text: '' } }
  })
  server.waitForReady(60_000).then(() => say(server.listeningPort))
}
