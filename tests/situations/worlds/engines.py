"""Defines projects whose program runs for a long time: a game, a telephone exchange, a robot."""

from .hints import World, command, hint, note

PACKAGES = "**/furrow/src"

COPPERWORKS = World(
    {
        "dir": "copperworks",
        "remote": "git@github.com:redstonians/copperworks.git",
        "branch": "mc/1.20",
        "branches": ["mc/1.21"],
        "files": [
            "build.gradle",
            "gradle.properties",
            "gradlew",
            "art/pipes.aseprite",
            "src/main/java/red/copper/block/PipeBlock.java",
            "src/main/java/red/copper/net/FluidNetwork.java",
            "src/main/resources/fabric.mod.json",
            "src/main/resources/assets/copperworks/lang/en_us.json",
        ],
    },
    [
        note("copperworks/commits", "written for players: the changelog is made of them"),
        command(
            "fabric/client", "./gradlew runClient --args='--username Dev'", "minecraft start", priority=7, age_h=31
        ),
        command(
            "fabric/gametest", "./gradlew runGametest", "test", priority=8, reason="JUnit cannot load the registries"
        ),
        command("fabric/datagen", "./gradlew runDatagen", "recipes loot", "src/main/generated is written by it"),
        command("mappings/sources", "./gradlew genSources"),
        command("loom/cache", "./gradlew --stop && rm -rf .gradle/loom-cache", "fix loom", "Failed to remap"),
        note("pipes/ticks", "fluids move every fourth tick; a network is computed when a pipe is placed or broken"),
        note("pipes/textures", "exported from art/pipes.aseprite; the png are not edited"),
        command(
            "jdk/seventeen",
            "export JAVA_HOME=$HOME/.sdkman/candidates/java/17.0.10-tem",
            "fix gradle java",
            "the machine's own is 21, and Loom 1.4 cannot read its classes",
        ),
        command("modrinth/publish", "./gradlew modrinth curseforge -Prelease", "upload", reason="uploads to both"),
        command("mixins/export", "./gradlew runClient -Dmixin.debug.export=true"),
        note("lang/crowdin", "by hand en_us.json alone; the others come from Crowdin on Sundays", "translation"),
    ],
)

SWITCHYARD = World(
    {
        "dir": "switchyard",
        "remote": "https://git.carrier.example/voice/switchyard.git",
        "branch": "main",
        "files": [
            "rebar.config",
            "config/sys.config",
            "scenarios/uac.xml",
            "apps/call_fsm/src/call_fsm.erl",
            "apps/cdr_writer/src/cdr_writer.erl",
            "apps/sip_edge/src/sip_edge.app.src",
            "apps/sip_edge/src/sip_txn.erl",
            "apps/sip_edge/test/sip_edge_SUITE.erl",
        ],
    },
    [
        note("switchyard/commits", "application first, ticket last: `sip_edge: what (VX-77)`", "git commit"),
        command(
            "rebar3/ct",
            "rebar3 ct --sname ct --readable=compact",
            "suite",
            "without --sname no peer node starts",
            priority=8,
        ),
        note("upgrade/appup", "it is never restarted: each release has an .appup (rebar3 appup generate)", priority=7),
        command("sip_edge/load", "sipp -sf scenarios/uac.xml -r 50 -m 1000 127.0.0.1:5060", "stress", age_h=95),
        command("sip_edge/trace", "sngrep -d lo port 5060", "packets"),
        note("call_fsm/timers", "T1 is 500 ms and T4 5 s, by RFC 3261; the carrier measures them"),
        command(
            "node/attach",
            "_build/default/rel/switchyard/bin/switchyard remote_console",
            reason="leave with ^G q: `q().` stops the exchange",
        ),
        command("relx/tar", "rebar3 as prod tar", "release package"),
        command("epmd/start", "epmd -daemon", "fix erlang", "register/listen error: econnrefused"),
        note("cdr_writer/rotate", "a file ends at 64 MB or at midnight; billing counts its lines"),
        hint(
            "trunks/test",
            {"type": "json", "data": {"host": "trunk-t.carrier.example", "port": 5060, "codec": "PCMA"}},
            "sip peer",
            None,
        ),
        command("dialyzer/plt", "rebar3 dialyzer --update-plt=true", "types", reason="nine minutes the first time"),
    ],
)

FURROW = World(
    {
        "dir": "furrow",
        "remote": "git@github.com:agribots/furrow.git",
        "branch": "main",
        "files": [
            "src/camera_rig/package.xml",
            "src/camera_rig/camera_rig/calib.py",
            "src/camera_rig/test/test_calib.py",
            "src/drive_base/package.xml",
            "src/drive_base/src/odometry.cpp",
            "src/row_planner/package.xml",
            "src/row_planner/src/planner.cpp",
        ],
    },
    [
        note("furrow/commits", "package first: `row_planner: what`"),
        command("colcon/build", "colcon build --symlink-install", priority=7),
        command(
            "drive_base/test",
            "colcon test --packages-select drive_base --event-handlers console_direct+",
            scope={"cwd_glob": [f"{PACKAGES}/drive_base/**"]},
            priority=8,
        ),
        command(
            "camera_rig/test",
            "python3 -m pytest -q test",
            reason="colcon swallows what it prints",
            scope={"cwd_glob": [f"{PACKAGES}/camera_rig/**"]},
            priority=8,
        ),
        command(
            "row_planner/test",
            "colcon test --packages-select row_planner && colcon test-result --verbose",
            scope={"cwd_glob": [f"{PACKAGES}/row_planner/**"]},
            priority=8,
        ),
        command(
            "camera_rig/calibrate",
            "ros2 run camera_calibration cameracalibrator --size 8x6 --square 0.025",
            "chessboard lens",
            scope={"cwd_glob": [f"{PACKAGES}/camera_rig/**"]},
        ),
        command(
            "row_planner/sim",
            "ros2 launch row_planner sim.launch.py headless:=true",
            "gazebo field",
            scope={"cwd_glob": [f"{PACKAGES}/row_planner/**"]},
        ),
        command(
            "ros/source",
            "source /opt/ros/humble/setup.bash && source install/setup.bash",
            "fix ros2 colcon",
            "a tool's shell has not read ~/.bashrc",
        ),
        command("rosdep/install", "rosdep install --from-paths src -y --ignore-src", "dependencies"),
        command("bags/record", "ros2 bag record -o /scratch/bags/today /odom /camera/points"),
        note("field/safety", "nothing to /cmd_vel: the robot on the desk is live", priority=8),
    ],
)
