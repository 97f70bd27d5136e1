// The embedded Minecraft server: an empty world on the loopback interface, where everybody may build.
// It writes one line, {"port": n}, to standard error, as flying-squid has a prompt of its own on standard output, and
// ends when its standard input does, so it never outlives who started it.
'use strict'

const { createMCServer } = require('flying-squid')
const { Vec3 } = require('vec3')
const { VERSION } = require('./player')

const NEARBY = 64 // blocks; the server tells every player of every block, however far, and most of that is wasted

process.stdin.on('end', () => process.exit(0)).resume()
process.on('SIGINT', () => {}) // Ctrl-C is for the program in front, which closes our input in its own time

const server = createMCServer({
  host: '127.0.0.1',
  port: 0,
  version: VERSION,
  motd: 'Skillstack',
  'online-mode': false,
  'everybody-op': true,
  'max-players': 1024,
  'max-entities': 4096,
  'view-distance': Number(process.argv[2]),
  gameMode: 1,
  difficulty: 0,
  logging: false,
  noConsoleOutput: true,
  kickTimeout: 120_000,
  generation: { name: 'empty', options: { seed: 0 } },
  plugins: {},
  'player-list-text': { header: { text: '' }, footer: { text: '' } }
})

server.getSpawnPoint = async () => new Vec3(0, 100, 0) // flying-squid's own looks for ground, and there is none
server.on('newPlayer', player => {
  player.worldSendInitialChunks = async () => {} // there is nothing to see where players come in
  player.on('sendBlock_cancel', ({ position }, cancel) => {
    if (position.distanceTo(player.position) > NEARBY) cancel(false)
  })
})
server.on('error', error => { throw error })
server.waitForReady(60_000).then(() => process.stderr.write(JSON.stringify({ port: server.listeningPort }) + '\n'))
