! Prints the value of a tunable in the answer of launchwise recommend --json: read_answer FILE NAME
program read_answer
    implicit none
    character(len=4096) :: file, name, line
    integer :: unit, value, status
    logical :: inside = .false.
    call get_command_argument(1, file)
    call get_command_argument(2, name)
    open (newunit=unit, file=trim(file), action='read', status='old')
    do  ! one key per line; the first configuration is the one to launch
        read (unit, '(a)', iostat=status) line
        inside = inside .or. index(line, '"configuration"') > 0
        if (status /= 0 .or. inside .and. index(line, '}') > 0) error stop 'no such tunable'
        if (inside .and. index(line, '"'//trim(name)//'":') > 0) exit
    end do
    read (line(index(line, ':') + 1:), *) value
    print '(i0)', value
end program read_answer
